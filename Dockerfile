# An image with the commands, for a CPU or for CUDA:
#
#     docker build -t vit_plugin .
#     docker build --build-arg DEVICE=cuda -t vit_plugin:cuda .
#     docker run --rm -v "$PWD:/work" vit_plugin train --data FOLDER
ARG PYTHON=3.13
FROM python:${PYTHON}-slim
ARG DEVICE=cpu
ARG EXTRAS=onedl,demo,export

# torch first, so that a change of the code does not install it again. That of PyPI brings CUDA along.
COPY tests/constraints.txt /tmp/tests/
RUN case "$DEVICE" in \
      cpu) index=https://download.pytorch.org/whl/cpu ;; \
      cuda) index=https://pypi.org/simple ;; \
      *) echo "DEVICE=$DEVICE must be cpu or cuda" >&2; exit 1 ;; \
    esac \
 && pip install --no-cache-dir --index-url "$index" -c /tmp/tests/constraints.txt torch torchvision

COPY . /tmp/source
RUN pip install --no-cache-dir -c /tmp/tests/constraints.txt "/tmp/source[$EXTRAS]" \
 && rm -rf /tmp/source /tmp/tests

RUN useradd --create-home --uid 1000 user && install -d -o user /work
USER user
WORKDIR /work
ENTRYPOINT ["vit-plugin"]
CMD ["--help"]
