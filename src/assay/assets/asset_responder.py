"""Answer frames with the asset server, and record the verdicts on both sides. Does not wait."""

from collections.abc import Callable, Sequence
from functools import partial

from assay.assets.asset_server import AssetServer
from assay.edges.recorder import Recorder


def responder(server: AssetServer, recorder: Recorder) -> Callable[[bytes], Sequence[bytes]]:
    """Return a function that returns the frames to send for a frame, in order."""
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
