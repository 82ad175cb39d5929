"""The stage that embeds every memory's texts."""
