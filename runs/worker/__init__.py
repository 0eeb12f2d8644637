"""The Python worker kit and the reference runtime: HTTP only, independent of the control plane's code."""
