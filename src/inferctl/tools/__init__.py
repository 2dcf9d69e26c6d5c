"""The programs that this project builds from pinned sources."""
