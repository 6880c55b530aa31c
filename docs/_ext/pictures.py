"""Pictures of the tutorial: inline SVG whose text takes the colour of the page, so that it reads in light and dark.

``TARGET``, ``DRAFT`` and ``RESIDUAL`` are three colours of Okabe and Ito, told apart by every common kind of colour
vision, and each at a contrast of 3 or more on both backgrounds. No picture says anything by colour alone.
"""

import io
import re
from html import escape

import matplotlib as mpl
from IPython.display import HTML
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

TARGET, DRAFT, RESIDUAL = "#0072B2", "#D55E00", "#009E73"
INK = "#010203"  # becomes the colour of the page's text

mpl.use("agg")
mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "font.size": 13,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
        "hatch.linewidth": 0.6,
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
        ),
    }
)


def picture(figure: Figure, *, alt: str, caption: str) -> HTML:
    """Return a figure for the page: what it shows in words for those who cannot see it, and a caption for all."""
    for axes in figure.axes:
        if not (axes.get_title() or axes.get_xlabel()):
            raise ValueError("a panel has neither a title nor a label on its axis")
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": caption}):  # ids that differ from picture to picture, not from build to build
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _without_unused_ids(svg)
    svg = re.sub(r' width="[^"]*pt" height="[^"]*pt"| height="[^"]*pt"| width="[^"]*pt"', "", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
    return HTML(
        f'<figure class="picture"><div class="scroll">{svg}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _without_unused_ids(svg: str) -> str:
    """Return a picture without the ids that nothing in it refers to: each has an ``axes_1``, a page may have one."""
    used = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", svg))
    return re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
