"""Registers ``spillgate://`` when a program imports ``limits``.

``limits`` has no way to find the storages of other packages, so this module is imported at the start
of the interpreter, by ``spillgate_limits.pth``. It imports nothing of ``spillgate`` until ``limits``
is imported, and does nothing at all in programs that do not.
"""

import sys


class _AfterLimits:
    """Finds ``limits`` as usual, and imports ``spillgate.limits`` after it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "limits":
            return None
        # The list stays as it is: other threads may be going through it.
        for finder in list(sys.meta_path):
            if finder is cls or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader, as without this one.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            import spillgate.limits  # noqa: F401
        except Exception as error:  # A program that does not ask for it must not fail.
            from warnings import warn

            warn(f"spillgate:// is not available: {error}", ImportWarning, stacklevel=2)


sys.meta_path.insert(0, _AfterLimits)
