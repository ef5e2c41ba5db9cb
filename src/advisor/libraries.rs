//! The libraries that have terms of their own for the changes that the advisor suggests.

/// A library with an API of its own for such changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// MaxText.
    MaxText,
    /// Tunix.
    Tunix,
    /// Keras.
    Keras,
    /// Haliax, with its `Stacked` layers.
    Haliax,
    /// Equinox.
    Equinox,
    /// Haiku.
    Haiku,
    /// PyTorch through torchax.
    Torchax,
    /// Flax with Linen modules.
    Linen,
    /// Flax with NNX modules.
    Nnx,
    /// JAX itself, or an unknown library.
    Jax,
}
