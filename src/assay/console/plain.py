"""What peers have said, for a terminal. No I/O."""


def plain(text: str) -> str:
    """*text* on one line, without anything that a terminal would act upon."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "·" for each in text)
