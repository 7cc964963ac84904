"""Our own tools, on record: a frame in, frames out, and the verdicts on both in the records. Does not wait."""

from collections.abc import Callable, Sequence
from functools import partial

from assay.assets.asset_server import AssetServer
from assay.edges.recorder import Recorder


def responder(server: AssetServer, recorder: Recorder) -> Callable[[bytes], Sequence[bytes]]:
    """What gives the frames that are to be sent for a frame, in order."""
    return server.respond if recorder.idle else partial(_recorded, server, recorder)


def _recorded(server: AssetServer, recorder: Recorder, frame: bytes) -> Sequence[bytes]:
    began = recorder.clock()
    turn = server.hear(frame)
    if turn.verdict.kind == "blank":
        return ()
    moment = recorder.moment(turn.verdict, began)
    answers = server.answers(turn, moment.request_id)
    recorder.exchange(turn, answers, moment)
    return turn.frames(answers)
