"""How the site is built (`make docs`); the Markdown next to this file is its source, and readable by itself."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
# tests/ knows the public names, the tutorials and the graph of modules.
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "tests")]

import tutorials  # noqa: E402

project = "asynchebb"
author = "The asynchebb developers"
copyright = author
release = version_of("asynchebb")

extensions = [
    *("myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"),
    *("docstrings", "notebooks", "pages"),
]
exclude_patterns = ["extensions", "_templates"]
nitpicky = True
# Names of other packages, since the site is built offline; one of them is Matplotlib's by another way.
nitpick_ignore_regex = [("py:.*", r"(?!asynchebb).*|asynchebb\.drawing\.figures\.Figure")]

# Markdown
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Notebooks
nb_custom_formats = {f"tutorials/{name}.md": ("notebooks.read", {}, False) for name in tutorials.sources()}
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# Docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Samples": "Samples"}  # what scikit-learn accepts as data, a long list of types
napoleon_use_ivar = True
autodoc_typehints_format = "short"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# What it looks like: all from this folder and the theme's, nothing from elsewhere
html_theme = "pydata_sphinx_theme"
html_title = "asynchebb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "article_header_end": ["notebook"],
    "show_toc_level": 2,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "native",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "install": [], "generated/gallery": []}
