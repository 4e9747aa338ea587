//! A ring buffer of 24 bytes for the segments in the network: a queue with access by index.

/// A queue whose capacity is a power of two. Only growing allocates.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    places: Box<[T]>,
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { places: Box::default(), head: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        // Without capacity there is no record, and the index is not used.
        (self.head as usize + index) & self.places.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.places.get(self.place(index)) } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.place(index);
        if index < self.len() { self.places.get_mut(place) } else { None }
    }

    pub(super) fn back(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    #[inline]
    pub(super) fn push(&mut self, record: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len());
        self.places[place] = record;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut places = Vec::with_capacity((2 * self.places.len()).max(4));
        let (behind, before) = self.places.split_at(self.head as usize);
        places.extend_from_slice(before);
        places.extend_from_slice(behind);
        places.resize(places.capacity(), T::default());
        self.places = places.into_boxed_slice();
        self.head = 0;
    }

    /// Removes the first `count` records, which must exist.
    #[inline]
    pub(super) fn pop(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "the ring holds at least `count` records");
        self.head = self.place(count) as u32;
        self.len -= count as u32;
    }

    /// Returns how many records from the front satisfy `is_before`, which must hold for a prefix of the queue.
    pub(super) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if is_before(&self.places[self.place(middle)]) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl<T: Copy + Default> std::ops::Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the index is within the ring")
    }
}

impl<T: Copy + Default> std::ops::IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the index is within the ring")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn ring_equals_vec_deque(steps in prop::collection::vec(0u8..5, 0..300)) {
            let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
            for (number, step) in (1u64..).zip(steps) {
                if step < 3 {
                    ring.push(number);
                    queue.push_back(number);
                } else if queue.pop_front().is_some() {
                    ring.pop(1);
                }
                prop_assert_eq!(ring.len(), queue.len());
                prop_assert!((0..queue.len() + 2).all(|index| ring.get(index) == queue.get(index)));
                prop_assert_eq!(ring.back(), queue.back());
                let half = number / 2;
                prop_assert_eq!(ring.partition_point(|n| *n <= half), queue.partition_point(|n| *n <= half));
            }
        }
    }
}
