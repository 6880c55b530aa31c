"""How the site is built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``. It needs no network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
# The kernel that runs the tutorial is another process, and draws its pictures with docs/_ext/pictures.py.
os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path[:2], os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
# Its kernel is described in docs/_ext/kernels: it reports errors alone, so that a build that is sound says nothing.
os.environ["JUPYTER_PATH"] = os.pathsep.join([sys.path[0], os.environ.get("JUPYTER_PATH", "")]).rstrip(os.pathsep)

import refspec  # noqa: E402  (found by the path above)

project = "refspec"
author = "The refspec authors"
project_copyright = author
release = refspec.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "docstrings", "registries"]
exclude_patterns = ["_build", "decisions/README.md"]  # the README of the decisions is included by decisions/index
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 90
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "refspec"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
