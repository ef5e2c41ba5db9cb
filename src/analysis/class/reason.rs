//! Evidence for a class, and how certain it is.

/// Confidence in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// An ambiguous name, or merely nothing to the contrary.
    Guess,
    /// A name or use that hardly anything else has.
    Likely,
    /// The compiler says so.
    Known,
}

impl Certainty {
    /// One word for reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Guess => "guess",
            Self::Likely => "likely",
            Self::Known => "known",
        }
    }
}

/// Evidence for a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The compiler says so.
    Compiler,
    /// The argument's name is typical of data.
    DataName,
    /// The argument's name is typical of per-sample state.
    StateName,
    /// The argument's name is typical of a cache.
    CacheName,
    /// The argument's name is typical of optimizer state.
    OptimizerName,
    /// The argument's name is typical of weights.
    WeightName,
    /// An argument of integers or booleans whose name indicates nothing.
    Integers,
    /// An argument whose name indicates nothing else.
    Argument,
    /// Updated, and read by hardly anything but the update of a weight.
    ServesUpdate,
    /// Updated by a program that trains, and read by the rest of it.
    UpdatedFromGradient,
    /// A part of it is written in each call, the rest stays.
    WrittenInPlace,
    /// Its next value is a result of a program that does not train.
    StateReturned,
    /// One number that a program which trains counts on.
    NumberReturned,
    /// Its next value is a result that no gradient reaches.
    WithoutGradient,
    /// Its next value is a result, but its elements are integers.
    IntegersReturned,
    /// No result of a program that trains is its next value.
    NotReturned,
    /// A loop over layers takes a slice of it in each step.
    TakenByLayers,
    /// One of many arrays that a program which trains does not return, and that have no dimension of the samples.
    NotOfSamples,
    /// One of the arrays, of several leading dimensions, of modules that are told apart by a number, in a program that
    /// trains and does not return them.
    OfModules,
    /// The program has no matrix product, convolution or lookup that a weight could be in.
    NoProducts,
    /// Its neighbours in the tree of arguments are of this class.
    Neighbours,
    /// It is an argument by itself, beside a tree of weights, and is not returned.
    BesideWeights,
    /// Weights have the same paths and shapes in another container.
    MirrorsWeights,
    /// It and nearly all that is beside it have a row for each of as many samples, and a tree of weights is elsewhere.
    RowForEachSample,
    /// It holds what an argument holds: a copy, a cast, a prefetch.
    CopyOfArgument,
    /// It holds a slice of what an argument holds, such as one layer's of the weights that a scan takes.
    SliceOfArgument,
    /// What a weight that is stored in few bits is unpacked into.
    Unpacked,
    /// Elements of 4 bits or less, which samples never have.
    FewBits,
    /// An all-gathered argument.
    Gathered,
    /// A loop of the forward pass writes a slice of it in each step, and the backward pass reads it.
    SavedByLoop,
    /// A loop of the backward pass writes a slice of it in each step.
    CollectedByLoop,
    /// A loop over micro-batches adds it up, and it has the dimensions of a weight.
    SummedByLoop,
    /// Named by the forward pass, live in the backward pass.
    KeptForBackward,
    /// Its name shows recomputation in the backward pass.
    Recomputed,
    /// Named by the backward pass.
    Backward,
    /// Named by the forward pass, dropped before the backward pass.
    DroppedBefore,
    /// The buffer that has its memory immediately before or after it is of this class.
    SharesMemory,
    /// Nothing more is known than that it is a temporary.
    NoSign,
}

impl Reason {
    /// Confidence in a class with this evidence.
    #[must_use]
    pub const fn certainty(self) -> Certainty {
        match self {
            Self::Compiler | Self::NoSign => Certainty::Known,
            Self::Integers
            | Self::Argument
            | Self::NotReturned
            | Self::StateReturned
            | Self::NumberReturned
            | Self::WithoutGradient
            | Self::NotOfSamples
            | Self::OfModules
            | Self::NoProducts
            | Self::Neighbours
            | Self::SharesMemory => Certainty::Guess,
            _ => Certainty::Likely,
        }
    }

    /// Whether the class was inferred rather than stated by the compiler.
    #[must_use]
    pub const fn is_guess(self) -> bool {
        !matches!(self, Self::Compiler | Self::NoSign)
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Compiler => "the compiler says so",
            Self::DataName => "the argument's name is typical of data",
            Self::StateName => "the argument's name is typical of per-sample state",
            Self::CacheName => "the argument's name is typical of a cache",
            Self::OptimizerName => "the argument's name is typical of optimizer state",
            Self::WeightName => "the argument's name is typical of weights",
            Self::Integers => "an argument of integers or booleans",
            Self::Argument => "an argument whose name indicates nothing else",
            Self::ServesUpdate => "updated in each step, and read only by the update of a weight",
            Self::UpdatedFromGradient => "updated in each step, and read by the whole program",
            Self::WrittenInPlace => "a part of it is written in each call, the rest stays",
            Self::WithoutGradient => "returned with new values that no gradient is part of",
            Self::StateReturned => "returned with new values, in a program that does not train",
            Self::NumberReturned => "a single number that is returned with a new value",
            Self::IntegersReturned => "returned with new values, but integers are not trained",
            Self::NotReturned => "not returned by a program that trains",
            Self::TakenByLayers => "each layer of a loop takes its slice of it",
            Self::NotOfSamples => "not returned, and none of its dimensions is one of the samples",
            Self::OfModules => "not returned, but of one of several numbered modules",
            Self::NoProducts => "the program has no matrix product, convolution or lookup that a weight could be in",
            Self::Neighbours => "most neighbouring arguments are of this class",
            Self::BesideWeights => "not returned, and an argument by itself beside a tree of weights",
            Self::MirrorsWeights => "weights have the same tree and shapes",
            Self::RowForEachSample => {
                "it and the arguments beside it have as many rows each, and none is named as a weight"
            }
            Self::CopyOfArgument => "it is a copy of an argument",
            Self::SliceOfArgument => "it is a slice of an argument",
            Self::Unpacked => "unpacked from a weight that is stored in fewer bits",
            Self::FewBits => "an argument with elements of 4 bits or less that is not returned",
            Self::Gathered => "an argument gathered from other devices",
            Self::SavedByLoop => "a loop of the forward pass saves it for the backward pass",
            Self::CollectedByLoop => "a loop of the backward pass writes it",
            Self::SummedByLoop => "a loop over micro-batches adds it up",
            Self::KeptForBackward => "made by the forward pass, live in the backward pass",
            Self::Recomputed => "recomputed in the backward pass",
            Self::Backward => "made by the backward pass",
            Self::DroppedBefore => "made by the forward pass, dropped before the backward pass",
            Self::SharesMemory => "it shares its memory with a buffer of this class",
            Self::NoSign => "nothing more is known",
        }
    }
}
