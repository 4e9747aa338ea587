//! A slab: storage for items that come and go, by index.

/// Number of items from which on an empty slab releases its memory.
const CROWD: usize = 256;

/// A slab: items by index, and a list of the free indices.
#[derive(Debug)]
pub(super) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = item;
            return index;
        }
        self.push(item)
    }

    fn push(&mut self, item: T) -> u32 {
        self.items.push(item);
        u32::try_from(self.items.len() - 1).expect("a slab holds fewer than 2^32 items")
    }

    /// Returns an upper bound of all indices in use: one more than the largest so far.
    pub(super) fn len(&self) -> u32 {
        self.items.len() as u32
    }

    /// Calls `forget` with the old content of every free index.
    pub(super) fn forget_free(&mut self, mut forget: impl FnMut(&mut T)) {
        self.free.iter().for_each(|place| forget(&mut self.items[*place as usize]));
    }

    /// Returns two different items.
    #[cold]
    #[inline(never)]
    pub(super) fn both(&mut self, first: u32, second: u32) -> [&mut T; 2] {
        let places = [first as usize, second as usize];
        self.items.get_disjoint_mut(places).expect("the two indices are valid and differ")
    }

    pub(super) fn release(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Releases the memory if the slab was large and is empty. Returns whether it did.
    pub(super) fn release_unused_memory(&mut self) -> bool {
        let rests = self.items.len() >= CROWD && self.free.len() == self.items.len();
        if rests {
            *self = Self::default();
        }
        rests
    }
}

impl<T: Default> Slab<T> {
    /// Returns the index that the next item will get.
    #[inline(always)]
    pub(super) fn next(&mut self) -> u32 {
        match self.free.last() {
            Some(place) => *place,
            None => self.make_place(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_place(&mut self) -> u32 {
        let place = self.push(T::default());
        self.free.push(place);
        place
    }

    /// Takes the index that [`next`](Self::next) returned into use, with its old content.
    #[inline(always)]
    pub(super) fn take(&mut self, next: u32) -> &mut T {
        let taken = self.free.pop();
        debug_assert_eq!(taken, Some(next), "the next free index was not taken in between");
        &mut self[next]
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
