"""Peak TFLOP/s of GPUs."""

# Dense TFLOP/s of 16-bit products that are summed in float32, by words of the GPU's name, from
# NVIDIA's data sheets (GeForce: the white papers of their architectures). The first row whose words
# are in the name counts. Parts of words do not, since an A10G or an RTX A4000 is slower than an A10
# or an A40.
GPU_TFLOPS = {
    'B200': 2250.0,
    'GH200': 989.0,
    'H200 NVL': 835.0,
    'H200': 989.0,
    'H100 PCIe': 756.0,
    'H100 NVL': 835.0,
    'H100': 989.0,
    'A100': 312.0,
    'L40S': 362.0,
    'L4': 121.0,
    'A10': 125.0,
    'A40': 150.0,
    'RTX 5090': 210.0,
    'RTX 4090': 165.0,
    'RTX 3090': 71.0,
    'V100': 125.0,
    'T4': 65.0,
}
# Words in the names of variants with other rates, and of parts of a GPU: none of the rows counts.
VARIANT_WORDS = ('Ti', 'SUPER', 'D', 'Laptop', 'Max-Q', 'MIG')
