"""The colours of the page, of its picture to share and of `hubless.plot`: written once, here.

Orange is before and blue is after, as in the palette of Okabe and Ito, which people with any colour vision
can tell apart; both are darker here than there, so that letters of these colours can be read.
"""

LIGHT = {
    "background": "#f6f7f8",
    "surface": "#ffffff",
    "text": "#1b2126",
    "muted": "#56616b",
    "line": "#d5dbe0",
    "before": "#b84f00",
    "after": "#0069a8",
    "wrong": "#b3261e",
    "accent": "#00684a",
    "heat": "#7a2f00",
    "empty": "#fbfaf8",
}
DARK = {
    "background": "#12161a",
    "surface": "#1a2026",
    "text": "#e7ecf0",
    "muted": "#a3afb9",
    "line": "#36414b",
    "before": "#f5a05a",
    "after": "#6fbdf0",
    "wrong": "#ff8a80",
    "accent": "#5fd0a5",
    "heat": "#ffb478",
    "empty": "#20272e",
}


def colour_rules() -> str:
    """Return the colours as variables of CSS; on paper the light ones hold, the dark ones are for screens."""
    dark = f':root[data-theme="dark"]{{{_variables(DARK)};color-scheme:dark}}'
    return f":root{{{_variables(LIGHT)};color-scheme:light}}@media screen{{{dark}}}"


def system_colour_rules() -> str:
    """Return the colours for a page without a script, which is dark where the system is."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)};color-scheme:dark}}}}"
    return f":root{{{_variables(LIGHT)};color-scheme:light}}{dark}"


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())
