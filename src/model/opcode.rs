//! Opcodes of HLO instructions: constants for those with special treatment, interned names for the rest.

/// An opcode: a row of an [`OpcodeTable`]. The first rows are the same in every table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Opcode(pub u8);

macro_rules! opcodes {
    ($($constant:ident = $number:literal $name:literal),* $(,)?) => {
        impl Opcode {
            $(#[doc = concat!("`", $name, "`.")] pub const $constant: Self = Self($number);)*
        }
        const KNOWN: &[&str] = &[$($name),*];
    };
}

opcodes! {
    UNKNOWN = 0 "",
    PARAMETER = 1 "parameter",
    TUPLE = 2 "tuple",
    GET_TUPLE_ELEMENT = 3 "get-tuple-element",
    BITCAST = 4 "bitcast",
    COPY = 5 "copy",
    WHILE = 6 "while",
    CONDITIONAL = 7 "conditional",
    CALL = 8 "call",
    FUSION = 9 "fusion",
    CUSTOM_CALL = 10 "custom-call",
    CONSTANT = 11 "constant",
    ASYNC_START = 12 "async-start",
    ASYNC_UPDATE = 13 "async-update",
    ASYNC_DONE = 14 "async-done",
    COPY_START = 15 "copy-start",
    COPY_DONE = 16 "copy-done",
    COLLECTIVE_PERMUTE = 17 "collective-permute",
    COLLECTIVE_PERMUTE_START = 18 "collective-permute-start",
    COLLECTIVE_PERMUTE_DONE = 19 "collective-permute-done",
    ALL_GATHER_START = 20 "all-gather-start",
    ALL_GATHER_DONE = 21 "all-gather-done",
    ALL_REDUCE_START = 22 "all-reduce-start",
    ALL_REDUCE_DONE = 23 "all-reduce-done",
    SEND = 24 "send",
    RECV_DONE = 25 "recv-done",
    ADD_DEPENDENCY = 26 "add-dependency",
    DOMAIN = 27 "domain",
    OPTIMIZATION_BARRIER = 28 "optimization-barrier",
    DYNAMIC_UPDATE_SLICE = 29 "dynamic-update-slice",
    SCATTER = 30 "scatter",
    SET_DIMENSION_SIZE = 31 "set-dimension-size",
    RAGGED_ALL_TO_ALL = 32 "ragged-all-to-all",
    OPT_BARRIER = 33 "opt-barrier",
}

/// Opcode names of one program. Row 255 is shared by all opcodes beyond the first 255.
#[derive(Debug, Clone)]
pub struct OpcodeTable {
    names: Vec<String>,
}

impl Default for OpcodeTable {
    fn default() -> Self {
        Self { names: KNOWN.iter().map(|&name| name.to_owned()).collect() }
    }
}

impl OpcodeTable {
    /// The opcode with a name, added if new.
    pub fn intern(&mut self, name: &str) -> Opcode {
        if let Some(i) = self.names.iter().position(|known| known == name) {
            return Opcode(i as u8);
        }
        if self.names.len() >= 255 {
            if self.names.len() == 255 {
                self.names.push("(other opcodes)".to_owned());
            }
            return Opcode(255);
        }
        self.names.push(name.to_owned());
        Opcode((self.names.len() - 1) as u8)
    }

    /// The opcodes whose names pass a test, to look for among a program's instructions.
    #[must_use]
    pub fn named(&self, accept: impl Fn(&str) -> bool) -> Vec<Opcode> {
        let rows = self.names.iter().zip(0u8..=255);
        rows.filter(|(name, _)| accept(name)).map(|(_, row)| Opcode(row)).collect()
    }

    /// Name of an opcode; empty if it is not in the table.
    #[must_use]
    pub fn name(&self, opcode: Opcode) -> &str {
        self.names.get(usize::from(opcode.0)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_name_their_rows() {
        let mut table = OpcodeTable::default();
        assert_eq!(table.name(Opcode::WHILE), "while");
        assert_eq!(table.name(Opcode::OPT_BARRIER), "opt-barrier");
        assert_eq!(table.intern("fusion"), Opcode::FUSION);
        let add = table.intern("add");
        assert_eq!(table.name(add), "add");
        for i in 0..400 {
            table.intern(&format!("made-up-{i}"));
        }
        assert_eq!(table.intern("yet another"), Opcode(255));
        assert_eq!(table.name(add), "add");
    }
}
