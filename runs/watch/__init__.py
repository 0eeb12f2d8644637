"""The stream process: watching runs, and the workers' surface. ASGI, and no thread waits in it."""
