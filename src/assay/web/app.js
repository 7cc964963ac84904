// Shows the state of the console as text.
const place = document.getElementById("state");
const answer = await fetch("api/state");
place.textContent = JSON.stringify(await answer.json(), null, 2);
