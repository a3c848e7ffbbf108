"""CUDA kernels."""

# Kernels that a model on a GPU launches.
CUDA_KERNELS = [
    "//kernels/detection:nms_cuda",
    "//kernels/detection:roi_align_cuda",
    "//kernels/linear:bias_activation_cuda",
    "//kernels/linear:depthwise_convolution_cuda",
    "//kernels/pixels:image_normalize_cuda",
    "//kernels/pixels:pixel_convolution_cuda",
    "//kernels/scan:cross_scan_cuda",
    "//kernels/scan:selective_scan_cuda",
    "//kernels/segmentation:segmentation_argmax_cuda",
    "//kernels/sequence:depthwise_conv1d_cuda",
    "//kernels/sequence:layer_norm_cuda",
    "//kernels/sequence:token_mean_cuda",
    "//kernels/sequence:window_partition_cuda",
]

# Kernels that no model launches.
OTHER_CUDA_KERNELS = [
    "//kernels/detection:mask_paste_cuda",
    "//kernels/python:causal_conv1d_cuda",
    "//kernels/python:channel_scan_cuda",
]
