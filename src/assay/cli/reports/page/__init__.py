"""The data of the HTML report: what is kept of each message, within bounded memory, and how the page is made of it."""
