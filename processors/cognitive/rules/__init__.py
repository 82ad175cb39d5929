"""The pure rules of Cognitive Memory: density, judging, golden tests, working memory."""
