"""Rendered scenes with known depth: spheres and boxes on a floor before a wall, with photographs.

Ray casting gives the exact depth, and the seed, split and size determine a scene. Surfaces show
scikit-image's photographs; their left two thirds are for training, the rest for testing.
"""

from typing import NamedTuple

import cv2
import numpy as np
import skimage.data

PHOTOGRAPHS = ('astronaut', 'brick', 'chelsea', 'coffee', 'coins', 'grass', 'gravel', 'rocket')
WIDTH, HEIGHT = 128, 96
TEXELS_PER_METER = 90  # pixels of a photograph on a surface
AMBIENT = 0.35  # share of the light that comes from everywhere


class Hit(NamedTuple):
    """Where rays hit a surface.

    Attributes:
        distance: (H, W), in lengths of the rays; infinite where a ray misses.
        normal: (H, W, 3), towards the camera.
        uv: (H, W, 2), coordinates on the surface in meters, for its photograph.
    """

    distance: np.ndarray
    normal: np.ndarray
    uv: np.ndarray


def textures(test: bool) -> list[np.ndarray]:
    """The part of each photograph that belongs to the split, (H, W, 3) in RGB."""
    parts = []
    for name in PHOTOGRAPHS:
        photo = getattr(skimage.data, name)()
        photo = np.stack([photo] * 3, axis=-1) if photo.ndim == 2 else photo[..., :3]
        cut = photo.shape[1] * 2 // 3
        parts.append(photo[:, cut:] if test else photo[:, :cut])
    return parts


def hit_plane(rays: np.ndarray, normal: np.ndarray, offset: float) -> Hit:
    """Hit the plane of points p with ``normal @ p == offset``. The camera is at the origin."""
    along = rays @ normal
    with np.errstate(divide='ignore'):
        distance = np.where(offset / along > 0, offset / along, np.inf)
    points = np.where(np.isfinite(distance), distance, 0)[..., None] * rays
    axes = [axis for axis in range(3) if abs(normal[axis]) < 0.5]
    return Hit(distance, np.broadcast_to(-normal, rays.shape), points[..., axes])


def hit_sphere(rays: np.ndarray, center: np.ndarray, radius: float) -> Hit:
    """Hit a ball."""
    # A hit at t solves a * t**2 - 2 * b * t + c = 0; the nearer one is taken.
    a, b = (rays**2).sum(-1), rays @ center
    root = b**2 - a * (center @ center - radius**2)
    distance = np.where(root > 0, (b - np.sqrt(np.maximum(root, 0))) / a, np.inf)
    points = np.where(np.isfinite(distance), distance, 0)[..., None] * rays - center
    normal = points / radius
    around = np.arctan2(normal[..., 0], -normal[..., 2])
    above = np.arcsin(normal[..., 1].clip(-1, 1))
    return Hit(distance, normal, radius * np.stack((around, above), -1))


def hit_box(rays: np.ndarray, center: np.ndarray, sides: np.ndarray, yaw: float) -> Hit:
    """Hit a block with these sides, rotated about the vertical by ``yaw`` in radians."""
    cos, sin = np.cos(yaw), np.sin(yaw)
    to_local = np.array([(cos, 0, sin), (0, 1, 0), (-sin, 0, cos)])
    local, start = rays @ to_local.T, -(to_local @ center)
    with np.errstate(divide='ignore', invalid='ignore'):
        # A ray enters the block where it has entered the slabs of all three axes.
        ends = np.stack([(sign * sides / 2 - start) / local for sign in (-1, 1)])
    near, far = ends.min(0), ends.max(0)
    axis = near.argmax(-1)
    distance = near.max(-1)
    distance = np.where((distance < far.min(-1)) & (distance > 0), distance, np.inf)
    points = np.where(np.isfinite(distance), distance, 0)[..., None] * local + start
    face = np.eye(3)[axis]
    others = np.array([(1, 2), (0, 2), (0, 1)])[axis]
    normal = -np.sign((local * face).sum(-1, keepdims=True)) * face
    return Hit(distance, normal @ to_local, np.take_along_axis(points, others, -1))


def colors(photo: np.ndarray, uv: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The photograph's colors (H, W, 3) at ``uv`` in meters. It repeats mirrored.

    ``shift`` moves the photograph, in its pixels.
    """
    size = np.array(photo.shape[1::-1])
    at = np.abs((uv * TEXELS_PER_METER + shift) % (2 * size) - size).astype(np.float32)
    return cv2.remap(photo, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)


def scene(
    seed: int, test: bool = False, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> tuple[np.ndarray, np.ndarray]:
    """An image (H, W, 3) in RGB, and its depth (H, W) in meters along the optical axis.

    Args:
        seed: seed of all random choices.
        test: whether to use the photographs' parts for testing.
        size: width and height in pixels.
    """
    rng = np.random.default_rng((seed, test))
    width, height = size
    focal = width / (2 * np.tan(np.radians(rng.uniform(50, 70)) / 2))
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    # Rays have a length of 1 along the optical axis, so that distances in rays are depths.
    rays = np.stack([(x - width / 2) / focal, (y - height / 2) / focal, np.ones_like(x)], axis=-1)
    tilt = np.radians(rng.uniform(5, 20))  # the camera looks down a little
    cos, sin = np.cos(tilt), np.sin(tilt)
    rays = rays @ np.array([(1, 0, 0), (0, cos, sin), (0, -sin, cos)]).T
    floor, wall = (
        rng.uniform(1.0, 1.8),
        rng.uniform(5.0, 9.0),
    )  # meters below and ahead of the camera
    hits = [
        hit_plane(rays, np.array([0, 1.0, 0]), floor),
        hit_plane(rays, np.array([0, 0, 1.0]), wall),
    ]
    for _ in range(rng.integers(3, 8)):
        z = rng.uniform(1.8, wall - 0.8)
        center = np.array([rng.uniform(-0.45, 0.45) * z, 0.0, z])
        if rng.random() < 0.5:
            radius = rng.uniform(0.15, 0.6)
            center[1] = floor - radius
            hits.append(hit_sphere(rays, center, radius))
        else:
            sides = rng.uniform(0.2, 1.2, 3)
            center[1] = floor - sides[1] / 2
            hits.append(hit_box(rays, center, sides, rng.uniform(0, np.pi)))
    distances = np.stack([hit.distance for hit in hits])
    nearest = distances.argmin(0)
    light = np.array([rng.uniform(-1, 1), -1.5, -1.0])
    light /= np.linalg.norm(light)
    photos, image = textures(test), np.zeros((height, width, 3))
    for number, hit in enumerate(hits):
        photo = photos[rng.integers(len(photos))]
        shade = AMBIENT + (1 - AMBIENT) * np.maximum(hit.normal @ light, 0)[..., None]
        painted = shade * colors(photo, hit.uv, rng.uniform(0, 500, 2))
        image = np.where((nearest == number)[..., None], painted, image)
    image = image + rng.normal(0, 3, image.shape)
    return image.clip(0, 255).astype(np.uint8), distances.min(0).astype(np.float32)
