"""Operators that launch nothing of their own: views, allocations, and wrappers whose parts carry the cost."""

from __future__ import annotations

from mfupipe.costs.shape import Formula, always, moved, named, unknown

_NOTE = "no kernel of its own"


_WRAPPER = "the operators that it calls carry the cost"
_FACTORY = "the size of the result is a number, not one of the sizes"

_FREE = """
view view_as reshape reshape_as _reshape_alias _unsafe_view t t_ transpose transpose_ permute expand expand_as squeeze
squeeze_ unsqueeze unsqueeze_ select slice narrow split split_with_sizes chunk unbind unfold as_strided as_strided_
alias detach detach_ lift_fresh flatten unflatten movedim swapaxes diagonal real imag view_as_real view_as_complex
tensor_split hsplit vsplit broadcast_to contiguous to type_as resolve_conj resolve_neg numpy_T adjoint
empty empty_like empty_strided new_empty new_empty_strided resize_ set_ result_type is_nonzero size stride
requires_grad_ atleast_1d atleast_2d record_stream lift
"""
_WRAPPERS = """
zeros zeros_like ones ones_like full_like new_zeros new_ones new_full dropout dropout_ feature_dropout
cross_entropy_loss nll_loss nll_loss_nd nll_loss2d batch_norm _batch_norm_impl_index _batch_norm_impl_index_backward
instance_norm group_norm adaptive_avg_pool1d adaptive_avg_pool2d max_pool1d max_pool2d max_pool3d
avg_pool1d select_backward slice_backward value_selecting_reduction_backward unfold_backward
multi_head_attention_forward _native_multi_head_attention _transformer_encoder_layer_fwd
_scaled_dot_product_attention_math tensordot chain_matmul linalg_multi_dot cosine_similarity normalize one_hot
repeat repeat_interleave clip_grad_norm item lstm gru embedding_backward meshgrid
binary_cross_entropy_with_logits pad nanmean hstack vstack dstack
"""
_UNSIZED = "arange linspace logspace eye full rand randn randint randperm range tril_indices triu_indices"

FORMULAS: dict[str, Formula] = (
    named(_FREE, always(moved(0, note=_NOTE)))
    | named(_WRAPPERS, always(unknown(_WRAPPER)))
    | named(_UNSIZED, always(unknown(_FACTORY)))
)
