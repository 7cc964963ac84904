"""Our own tools, on record: a frame in, frames out, and the verdicts on both in the records. Does not wait."""

from collections.abc import Callable, Sequence
from functools import partial

from assay.assets.server import AssetServer
from assay.edges.recorder import Recorder


def responder(server: AssetServer, recorder: Recorder) -> Callable[[bytes], Sequence[bytes]]:
    """What gives the frames that are to be sent for a frame, in order."""
    return server.respond if recorder.idle else partial(_recorded, server, recorder)


def _recorded(server: AssetServer, recorder: Recorder, frame: bytes) -> Sequence[bytes]:
    began = recorder.clock()
    turn = server.hear(frame)
    heard = turn.verdict
    if heard.kind == "blank":
        return ()
    moment = recorder.moment(heard, began)
    if heard.findings is None and turn.asked:
        # One good request, as nearly all are.
        answer = server.answer(heard, moment.request_id)
        settled = server.settle(heard, answer)
        recorder.exchange(turn, ((settled, answer[1]),), moment)
        return (settled.onward or b"",)
    answers = []
    for request in turn.asked:
        answer = server.answer(request, moment.request_id)
        answers.append((server.settle(request, answer), answer[1]))
    recorder.exchange(turn, answers, moment)
    return turn.frames([each.onward or b"" for each, _ in answers])
