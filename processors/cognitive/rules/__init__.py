"""The rules of Cognitive Memory: density, judging, golden tests, working memory. Pure: clock and state are passed in."""
