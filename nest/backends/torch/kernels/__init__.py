"""What generated source of the plan `fast` calls: kernels of nest's own where they are faster, torch's otherwise.

They are for CUDA, 16 bits and calls that no gradient is taken of. Sums are in f32, and a call repeated gives the same
bits. Nothing here needs Triton to be imported.
"""

from nest.backends.torch.kernels.choice import attend, conv1d, keep_heads, layer_norm, rms_norm

__all__ = ["attend", "conv1d", "keep_heads", "layer_norm", "rms_norm"]
