"""Scripts and styles of the web pages: hand-written ES modules, and the chart library. No Python code."""
