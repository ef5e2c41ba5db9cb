//! By what a class was told, and how sure that is.

/// How sure a class is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// A word that could mean something else, or nothing that speaks against it.
    Guess,
    /// A name that hardly anything else has, or a use that hardly anything else has.
    Likely,
    /// The compiler says so.
    Known,
}

impl Certainty {
    /// In a word.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Guess => "guess",
            Self::Likely => "likely",
            Self::Known => "known",
        }
    }
}

/// By what a class was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The compiler says so.
    Compiler,
    /// The argument's name is one of data.
    DataName,
    /// The argument's name is one of state kept for each sample.
    StateName,
    /// The argument's name is one of a cache.
    CacheName,
    /// The argument's name is one of an optimizer.
    OptimizerName,
    /// The argument's name is one of weights.
    WeightName,
    /// An argument of whole numbers or flags whose name says nothing.
    Integers,
    /// An argument whose name says nothing else.
    Argument,
    /// Updated, and read by hardly anything but the update of a weight.
    ServesUpdate,
    /// Updated by a program that trains, and read by the rest of it.
    UpdatedFromGradient,
    /// A part of it is written in each call, the rest stays.
    WrittenInPlace,
    /// Its next value is a result of a program that does not train.
    StateReturned,
    /// No result of a program that trains is its next value.
    NotReturned,
    /// Its neighbours in the tree of arguments are of this class.
    Neighbours,
    /// It holds what an argument holds: a copy, a cast, a prefetch.
    CopyOfArgument,
    /// An argument put together from all devices.
    Gathered,
    /// A loop of the forward pass writes a slice of it in each step, and the backward pass reads it.
    SavedByLoop,
    /// A loop of the backward pass writes a slice of it in each step.
    AddedUpByLoop,
    /// Named by the forward pass, alive in the backward pass.
    KeptForBackward,
    /// Named as computed again in the backward pass.
    Recomputed,
    /// Named by the backward pass.
    Backward,
    /// Named by the forward pass, dropped before the backward pass.
    DroppedBefore,
    /// What has its memory right before or after it is of this class.
    SharesMemory,
    /// Nothing says more than that it is a temporary.
    NoSign,
}

impl Reason {
    /// How sure a class told by this is.
    #[must_use]
    pub const fn certainty(self) -> Certainty {
        match self {
            Self::Compiler | Self::NoSign => Certainty::Known,
            Self::Integers
            | Self::Argument
            | Self::NotReturned
            | Self::StateReturned
            | Self::Neighbours
            | Self::SharesMemory => Certainty::Guess,
            _ => Certainty::Likely,
        }
    }

    /// Whether the class rests on more than what the compiler says.
    #[must_use]
    pub const fn is_guess(self) -> bool {
        !matches!(self, Self::Compiler | Self::NoSign)
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Compiler => "the compiler says so",
            Self::DataName => "the argument's name is one of data",
            Self::StateName => "the argument's name is one of state kept for each sample",
            Self::CacheName => "the argument's name is one of a cache",
            Self::OptimizerName => "the argument's name is one of an optimizer",
            Self::WeightName => "the argument's name is one of weights",
            Self::Integers => "an argument of whole numbers or flags",
            Self::Argument => "an argument whose name says nothing else",
            Self::ServesUpdate => "updated in each step, and read only by the update of a weight",
            Self::UpdatedFromGradient => "updated in each step, and read by the whole program",
            Self::WrittenInPlace => "a part of it is written in each call, the rest stays",
            Self::StateReturned => "returned with new values, in a program that does not train",
            Self::NotReturned => "not returned by a program that trains",
            Self::Neighbours => "most arguments beside it are of this class",
            Self::CopyOfArgument => "it holds what an argument holds",
            Self::Gathered => "an argument gathered from all devices",
            Self::SavedByLoop => "a loop of the forward pass saves it for the backward pass",
            Self::AddedUpByLoop => "a loop of the backward pass writes it",
            Self::KeptForBackward => "made by the forward pass, alive in the backward pass",
            Self::Recomputed => "computed again in the backward pass",
            Self::Backward => "made by the backward pass",
            Self::DroppedBefore => "made by the forward pass, dropped before the backward pass",
            Self::SharesMemory => "it shares its memory with one",
            Self::NoSign => "nothing says more",
        }
    }
}
