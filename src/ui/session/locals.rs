//! State of individual views of a document, such as zoom and sorting. Stored by type, so that a new view needs no
//! change here.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// One value per type.
#[derive(Default)]
pub struct Locals {
    values: HashMap<TypeId, Box<dyn Any>>,
}

impl Locals {
    /// The value of a type, created if needed.
    pub fn get<T: Default + 'static>(&mut self) -> &mut T {
        let value = self.values.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        if !value.is::<T>() {
            *value = Box::<T>::default();
        }
        match value.downcast_mut::<T>() {
            Some(value) => value,
            None => unreachable!("the entry was just made of this type"),
        }
    }

    /// Takes the value out, so that it can be borrowed together with others; return it with [`Self::put`].
    pub fn take<T: Default + 'static>(&mut self) -> T {
        self.values
            .remove(&TypeId::of::<T>())
            .and_then(|value| value.downcast::<T>().ok())
            .map_or_else(T::default, |value| *value)
    }

    /// Returns a value that was taken.
    pub fn put<T: 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_own_value() {
        let mut locals = Locals::default();
        *locals.get::<u32>() = 7;
        locals.put(String::from("zoom"));
        assert_eq!(*locals.get::<u32>(), 7);
        assert_eq!(locals.take::<String>(), "zoom");
        assert_eq!(locals.take::<String>(), "");
    }
}
