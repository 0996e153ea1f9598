"""Characters in and out: the grammar of what files may hold, whole files, aligned columns, notebook display."""
