"""Draws an emulated screen as a picture, for looking at."""

from pathlib import Path

import pyte
from PIL import Image, ImageDraw, ImageFont

FONT_SIZE_PX = 16
FONT_PATHS = (
    Path("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"),
    Path("/usr/share/fonts/TTF/DejaVuSansMono.ttf"),
    Path("/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf"),
    Path("/System/Library/Fonts/Menlo.ttc"),
)
"""Tried in order; without any of them Pillow's built-in font is used."""

BRAILLE_FONT_PATHS = (
    Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
    Path("/usr/share/fonts/TTF/DejaVuSans.ttf"),
)
"""The spinner's signs, which the fonts of one width lack."""

FOREGROUND, BACKGROUND = "#d8d8d8", "#181818"
_NAMED = {
    "black": "#181818",
    "red": "#cc5555",
    "green": "#66aa55",
    "brown": "#c0a040",
    "blue": "#5588cc",
    "magenta": "#aa66aa",
    "cyan": "#55aaaa",
    "white": "#c8c8c8",
    "brightblack": "#707070",
    "brightred": "#ff7777",
    "brightgreen": "#88dd77",
    "brightbrown": "#f0d060",
    "brightyellow": "#f0d060",
    "brightblue": "#77aaff",
    "brightmagenta": "#dd88dd",
    "bfightmagenta": "#dd88dd",  # pyte spells it so
    "brightcyan": "#77dddd",
    "brightwhite": "#ffffff",
}


def _font(paths: tuple[Path, ...] = FONT_PATHS) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    for path in paths:
        if path.exists():
            return ImageFont.truetype(str(path), FONT_SIZE_PX)
    return ImageFont.load_default()


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return _NAMED.get(name, f"#{name}")


def draw_screen(screen: pyte.Screen, *, shows_cursor: bool) -> Image.Image:
    """A picture of the cells, with the cursor as a block if it is shown."""
    font, braille_font = _font(), _font(BRAILLE_FONT_PATHS)
    left, _, right, _ = font.getbbox("M")
    wide, high = int(right - left), FONT_SIZE_PX + 4
    picture = Image.new("RGB", (screen.columns * wide, screen.lines * high), BACKGROUND)
    draw = ImageDraw.Draw(picture)
    for y in range(screen.lines):
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            ink, paper = _colour(cell.fg, FOREGROUND), _colour(cell.bg, BACKGROUND)
            is_cursor = shows_cursor and (screen.cursor.x, screen.cursor.y) == (x, y)
            if cell.reverse != is_cursor:
                ink, paper = paper, ink
            at = (x * wide, y * high)
            if paper != BACKGROUND:
                draw.rectangle((*at, at[0] + wide - 1, at[1] + high - 1), fill=paper)
            if cell.data.strip():
                own = braille_font if "\u2800" <= cell.data[0] <= "\u28ff" else font
                draw.text((at[0], at[1] + 1), cell.data, font=own, fill=ink, stroke_width=0)
                if cell.bold:
                    draw.text((at[0] + 1, at[1] + 1), cell.data, font=font, fill=ink)
            if cell.underscore:
                draw.line((at[0], at[1] + high - 2, at[0] + wide - 1, at[1] + high - 2), fill=ink)
    return picture
