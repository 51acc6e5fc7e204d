"""A table that does nothing: plain HTML without a script. It says what this Chromium can scroll on this machine at all.

It has the columns of the table of jobs, rows as high as there, and the same kinds of content: a check box, a link with
a mark, texts that are cut, a sign, a bar, numbers. Its rows are all there, as many as pass when it is scrolled; a
browser moves it without asking the page.
"""

ROW_PX = 36
_HEADS = ("", "Job", "Name", "State", "Slots", "Of", "Progress", "Next", "Queue", "Priority", "Owner", "Age")
_WIDTHS = (40, 104, 0, 112, 84, 60, 132, 140, 90, 92, 86, 76)
_STATES = (("completed", "#2e7d32"), ("failed", "#b3261e"), ("stopped", "#5f6368"))
_STYLE = """
body { margin: 0; padding: 166px 24px 0 240px; font: 13px/20px sans-serif; }
section { height: 660px; overflow: auto; background: #fff; border: 1px solid #ccc; }
table { width: 100%; table-layout: fixed; border-spacing: 0; font-variant-numeric: tabular-nums; }
thead { position: sticky; top: 0; background: #eee; }
th, td { height: 35px; padding: 0 12px; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; }
a { color: #0b57d0; text-decoration: none; }
i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; }
b { display: inline-block; width: 56px; height: 6px; border-radius: 3px; }
"""


def plain(num_rows: int) -> str:
    """Return the page."""
    columns = "".join(f'<col style="width: {width}px">' if width else "<col>" for width in _WIDTHS)
    heads = "".join(f"<th>{head}" for head in _HEADS)
    rows = "".join(map(_row, range(num_rows)))
    return (
        f"<!doctype html><html lang=en><title>Plain</title><style>{_STYLE}</style><section tabindex=0>"
        f"<table><colgroup>{columns}</colgroup><thead><tr>{heads}</thead><tbody>{rows}</tbody></table></section>"
    )


def _row(number: int) -> str:
    state, colour = _STATES[number % len(_STATES)]
    share = number * 7 % 101
    sign = (
        f'<svg width=14 height=14 viewBox="0 0 24 24" fill=none stroke="{colour}" stroke-width=2>'
        '<circle cx=12 cy=12 r=9></circle><path d="M9 12l2 2l4 -4"></path></svg>'
    )
    cells = (
        "<input type=checkbox>",
        f'<a href="#{number}"><i style="background: hsl({number * 37 % 360} 60% 50%)"></i> job-{number}</a>',
        f"train-{number}",
        f'<span style="color: {colour}">{sign} {state}</span>',
        "–",
        "1–8",
        f'<b style="background: linear-gradient(90deg, #0b57d0 {share}%, #ddd 0)"></b> {share} %',
        f"took {number % 24} h",
        "default",
        f"{number:,}",
        "admin",
        f"{number % 7} d",
    )
    return f"<tr>{''.join(f'<td>{cell}' for cell in cells)}"
