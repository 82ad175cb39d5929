"""Files of indexes: sealed directories, hard links, files of rows."""
