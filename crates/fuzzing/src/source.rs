//! Choices made by the bytes of an input, for targets that build something of it.

/// The bytes not used yet. Behind the last there are zeros without end.
pub(crate) struct Source<'a>(pub(crate) &'a [u8]);

impl<'a> Source<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below `bound`, which is at most 256.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// True once in `times`.
    pub(crate) fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// At most `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// Bytes behind one that says how many.
    pub(crate) fn counted(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.take(count.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
