"""How well a model does its task on somebody's data: recordings with transcripts in, a word error rate out."""
