"""The official extensions, judged by what was declared and by earlier messages; `spec/extensions` has their shapes."""
