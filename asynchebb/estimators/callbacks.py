"""scikit-learn's callbacks (progress bars, monitors), available since version 1.9.

An estimator that supports them has to call one of scikit-learn's private methods; this is the only place that does.
"""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        pass

    def with_callbacks(method):
        return method


class Passes:
    """Notifies the callbacks when each pass of a fit begins and ends."""

    def __init__(self, model: Any, X: Any, passes: int) -> None:
        self._model, self._X, self._task = model, X, None
        self._whole = model._init_callback_context(max_subtasks=passes) if AVAILABLE else None
        self._tell(self._whole, "begin")

    def begin(self) -> None:
        self._task = self._whole and self._whole.subcontext(task_name="pass")
        self._tell(self._task, "begin")

    def end(self) -> bool:
        """Whether a callback asks to stop."""
        return self._tell(self._task, "end")

    def finish(self) -> None:
        self._tell(self._whole, "end")

    def _tell(self, context: Any, event: str) -> bool:
        if context is None:
            return False
        hook = getattr(context, f"call_on_fit_task_{event}")
        model = self._model
        # The state is the only attribute that later changes in place.
        return (
            hook(estimator=model, X=self._X, reconstruction_attributes=lambda: {"state_": model.state_.copy()}) is True
        )
