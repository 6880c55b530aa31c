"""The run as JSON, with a ``schema`` of its own."""

import json
import platform
from math import isfinite
from typing import Any

import numpy
import scipy

import refspec
from verification.finding import SCHEMA, Result


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "refspec": refspec.__version__,
        "spec": str(refspec.SPEC_VERSION),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def as_json(result: Result) -> str:
    """Return the run as a JSON document.

    Keys: schema, verdict (holds, broken, inconclusive, nothing_ran), false_alarm, smallest_detectable_tv, seed,
    versions, implementation, budget, log_e, seconds, interrupted, texts (name: SHA-256), findings. An infinite log_e
    is "inf".
    """
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": result.verdict,
        "false_alarm": result.alpha,
        "smallest_detectable_tv": result.smallest_detectable_tv,
        "seed": result.seed,
        "versions": versions(),
        "implementation": result.implementation,
        "budget": result.budget,
        "log_e": result.log_e if isfinite(result.log_e) else str(result.log_e),
        "seconds": round(result.seconds, 3),
        "interrupted": result.interrupted,
        "texts": result.texts,
        "findings": [finding.as_json() for finding in result.findings],
    }
    return json.dumps(document, indent=1, allow_nan=False)
