//! Places for things that come and go.

/// So many places are worth giving back.
const CROWD: usize = 256;

/// An arena with a list of free places.
#[derive(Debug)]
pub(super) struct Arena<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    #[inline]
    pub(super) fn insert(&mut self, item: T) -> u32 {
        self.insert_with(|| item)
    }

    /// The same, made where it is to stand.
    #[inline(always)]
    pub(super) fn insert_with(&mut self, make: impl FnOnce() -> T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = make();
            return index;
        }
        self.items.push(make());
        u32::try_from(self.items.len() - 1).expect("fewer than 2^32 frames are on the way")
    }

    /// The place of what is inserted next.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.items.len() as u32)
    }

    /// One more than the last place that was ever taken.
    pub(super) fn len(&self) -> u32 {
        self.items.len() as u32
    }

    /// Let `forget` mark what is in places that are free.
    pub(super) fn forget_free(&mut self, mut forget: impl FnMut(&mut T)) {
        self.free.iter().for_each(|place| forget(&mut self.items[*place as usize]));
    }

    /// What is at this place, if it was ever taken.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.items.get(index as usize)
    }

    pub(super) fn release(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Give the memory back that a crowd has taken, if nothing is there. Returns whether it was.
    pub(super) fn rest(&mut self) -> bool {
        let rests = self.items.len() >= CROWD && self.free.len() == self.items.len();
        if rests {
            *self = Self::default();
        }
        rests
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
