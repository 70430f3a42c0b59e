"""Matrix products: FLOP = 2 M N K per matrix; bytes = both factors, the addend when there is one, the result."""

from __future__ import annotations

from mfupipe.costs.shape import (
    Formula,
    Shape,
    ShapeCost,
    Shapes,
    always,
    argument,
    broadcast,
    numel,
    require,
    tensor,
    total,
    unknown,
)


def _product(left: Shape, right: Shape, result: Shape, addend: Shape = ()) -> ShapeCost:
    flop = 2 * numel(result) * left[-1]
    return ShapeCost(flop=flop, elements=total((left, right, addend)) + numel(result))


def mm(shapes: Shapes) -> ShapeCost:
    """(M, K) @ (K, N)."""
    return _matrix_product(tensor(shapes, 0, 2), tensor(shapes, 1, 2), ())


def addmm(shapes: Shapes) -> ShapeCost:
    """addend + (M, K) @ (K, N)."""
    return _matrix_product(tensor(shapes, 1, 2), tensor(shapes, 2, 2), argument(shapes, 0))


def _matrix_product(left: Shape, right: Shape, addend: Shape) -> ShapeCost:
    require(left[1] == right[0], f"inner lengths {left[1]} and {right[0]} differ")
    return _product(left, right, (left[0], right[1]), addend)


def scaled_mm(shapes: Shapes) -> ShapeCost:
    """Matrix product of 8-bit factors: the result has another width than the factors."""
    product = mm(shapes)
    return ShapeCost(flop=product.flop, reason="factors and result have different element sizes")


def bmm(shapes: Shapes) -> ShapeCost:
    """(B, M, K) @ (B, K, N)."""
    return _batched_product(tensor(shapes, 0, 3), tensor(shapes, 1, 3), ())


def baddbmm(shapes: Shapes) -> ShapeCost:
    """addend + (B, M, K) @ (B, K, N)."""
    return _batched_product(tensor(shapes, 1, 3), tensor(shapes, 2, 3), argument(shapes, 0))


def _batched_product(left: Shape, right: Shape, addend: Shape) -> ShapeCost:
    require(left[0] == right[0], f"batches {left[0]} and {right[0]} differ")
    require(left[2] == right[1], f"inner lengths {left[2]} and {right[1]} differ")
    return _product(left, right, (left[0], left[1], right[2]), addend)


def addbmm(shapes: Shapes) -> ShapeCost:
    """addend + sum over B of (B, M, K) @ (B, K, N); the result is one matrix."""
    left, right = tensor(shapes, 1, 3), tensor(shapes, 2, 3)
    flop = _batched_product(left, right, ()).flop
    result = left[1] * right[2]
    return ShapeCost(flop=flop, elements=total((left, right, argument(shapes, 0))) + result)


def mv(shapes: Shapes) -> ShapeCost:
    """(M, K) @ (K)."""
    return _matrix_vector(tensor(shapes, 0, 2), tensor(shapes, 1, 1), ())


def addmv(shapes: Shapes) -> ShapeCost:
    """addend + (M, K) @ (K)."""
    return _matrix_vector(tensor(shapes, 1, 2), tensor(shapes, 2, 1), argument(shapes, 0))


def _matrix_vector(matrix: Shape, vector: Shape, addend: Shape) -> ShapeCost:
    require(matrix[1] == vector[0], f"inner lengths {matrix[1]} and {vector[0]} differ")
    return _product(matrix, vector, (matrix[0],), addend)


def dot(shapes: Shapes) -> ShapeCost:
    """(K) . (K)."""
    left, right = tensor(shapes, 0, 1), tensor(shapes, 1, 1)
    require(left == right, f"lengths {left[0]} and {right[0]} differ")
    return _product(left, right, (1,))


def outer(shapes: Shapes) -> ShapeCost:
    """(M) x (N): one multiplication per element, no tensor-core work."""
    left, right = tensor(shapes, 0, 1), tensor(shapes, 1, 1)
    return ShapeCost(elements=left[0] + right[0] + left[0] * right[0])


def linear(shapes: Shapes) -> ShapeCost:
    """(..., K) @ (N, K)^T + (N)."""
    rows, weight = tensor(shapes, 0), tensor(shapes, 1, 1, 2)
    require(rows[-1] == weight[-1], f"inner lengths {rows[-1]} and {weight[-1]} differ")
    return _product(rows, weight, rows[:-1] + weight[:-1], argument(shapes, 2))


def matmul(shapes: Shapes) -> ShapeCost:
    """torch.matmul: vectors are padded to matrices, leading dimensions broadcast."""
    left, right = tensor(shapes, 0), tensor(shapes, 1)
    matrix_left = left if len(left) > 1 else (1, *left)
    matrix_right = right if len(right) > 1 else (*right, 1)
    require(matrix_left[-1] == matrix_right[-2], f"inner lengths {left} and {right} differ")
    batch = broadcast((matrix_left[:-2], matrix_right[:-2]))
    return _product(left, right, (*batch, matrix_left[-2], matrix_right[-1]))


_GROUPED = always(unknown("the group offsets are not in the sizes"))

FORMULAS: dict[str, Formula] = {
    "mm": mm,
    "_int_mm": scaled_mm,
    "_scaled_mm": scaled_mm,
    "addmm": addmm,
    "addmm_": addmm,
    "_addmm_activation": addmm,
    "bmm": bmm,
    "baddbmm": baddbmm,
    "baddbmm_": baddbmm,
    "addbmm": addbmm,
    "addbmm_": addbmm,
    "mv": mv,
    "addmv": addmv,
    "addmv_": addmv,
    "dot": dot,
    "vdot": dot,
    "outer": outer,
    "ger": outer,
    "linear": linear,
    "matmul": matmul,
    "einsum": always(unknown("the operators that it calls carry the cost")),
    "_grouped_mm": _GROUPED,
    "_scaled_grouped_mm": _GROUPED,
}
