"""Engine variables: families that say nothing but how an engine, or a library below it, works.

They shape numbers and identify nobody, so a run records them and a script may hold their values; a
secret among them (``VLLM_API_KEY``) is known by its own name.
"""

FAMILIES = (
    *("CUBLAS_", "CUDA_", "CUDNN_", "DG_", "GGML_", "GLOO_", "KMP_", "LLAMA_", "MALLOC_", "MKL_"),
    *("NCCL_", "NIXL_", "NVIDIA_", "NVSHMEM_", "OMP_", "OPENBLAS_", "PYTORCH_", "SGL_", "SGLANG_"),
    *("TLLM_", "TORCH_", "TRITON_", "TRTLLM_", "UCX_", "VLLM_"),
)
