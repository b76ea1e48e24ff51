"""Choosing the colours: what is chosen is seen at once, all over the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyagent.ui.dialogs.picker import PickerItem, PickerList, PickerScreen
from pyagent.ui.theming import AUTO, theme_names

_WORDS: Mapping[str, str] = {
    AUTO: "as the terminal's background is",
    "dark": "",
    "light": "",
    "dark-daltonized": "blue and orange in place of green and red",
    "light-daltonized": "blue and orange in place of green and red",
    "ansi": "the terminal's own sixteen colours",
}

_SAMPLE = """Text, `code`, **strong** and [a link](https://example.com).

```python
def area(r: float) -> float:
    return math.pi * r ** 2  # exact
```

```diff
-return 3.14 * r ** 2
+return math.pi * r ** 2
```
"""


class ThemePicker(PickerScreen):
    """The result is the theme's name, or None, and then the colours are as they were."""

    def __init__(self, setting: str, preview: Callable[[str], None]) -> None:
        """`preview` shows the colours of a setting."""
        items = [PickerItem(name, name, _WORDS[name]) for name in theme_names()]
        super().__init__("Theme", items, preview=lambda name: _SAMPLE, chosen_id=setting or AUTO)
        self._show_colours = preview

    def on_picker_list_moved(self) -> None:
        super().on_picker_list_moved()
        chosen = self.query_one(PickerList).chosen
        if chosen is not None:
            self._show_colours(chosen.id)
