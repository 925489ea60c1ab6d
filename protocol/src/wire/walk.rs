//! Steps over values of any nesting, without recursion, and goes on where the bytes had ended.

use super::encoding::Encoding;
use super::kind::Kind;
use super::{MAX_DEPTH, WireError};

/// A struct, list or map that has begun and not ended.
#[derive(Clone, Copy, Debug)]
enum Level {
    Struct,
    /// Elements of a list, or keys and values of a map in turn.
    Items {
        even: Kind,
        odd: Kind,
        left: u32,
    },
}

/// Where stepping stands: the containers that are open, outermost first.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    open: [Level; MAX_DEPTH],
    depth: usize,
    /// Containers around the value that is stepped over.
    outside: usize,
}

impl Walker {
    /// To step over a value that stands in `outside` containers.
    pub(super) const fn new(outside: usize) -> Self {
        Self { open: [Level::Struct; MAX_DEPTH], depth: 0, outside }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.depth == 0
    }

    /// The next value is a struct and begins with its first field.
    pub(super) fn enter_struct(&mut self) -> Result<(), WireError> {
        self.push(Level::Struct)
    }

    fn push(&mut self, level: Level) -> Result<(), WireError> {
        if self.outside + self.depth >= MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        *self.open.get_mut(self.depth).ok_or(WireError::TooDeep)? = level;
        self.depth += 1;
        Ok(())
    }

    /// Steps on until everything is closed (`Ok`) or an error comes. After [`WireError::Truncated`] it can be called again with more
    /// bytes behind the same ones. `at` is where the stepping stands, and lies behind the end of `bytes` while a string is being
    /// passed whose bytes are not all there.
    pub(super) fn run<E: Encoding>(&mut self, bytes: &[u8], at: &mut usize, limit: usize) -> Result<(), WireError> {
        while let Some(level) = self.depth.checked_sub(1).and_then(|top| self.open.get_mut(top)) {
            if *at > limit {
                return Err(WireError::TooLarge { size: *at, limit });
            }
            let mut next = *at;
            let kind = match level {
                Level::Struct => match plain_fields::<E>(bytes, at, &mut next, limit)? {
                    None => {
                        self.depth -= 1;
                        continue;
                    }
                    Some(kind) => kind,
                },
                Level::Items { left: 0, .. } => {
                    self.depth -= 1;
                    continue;
                }
                Level::Items { even, odd, left } => {
                    if *left % 2 == 0 {
                        *even
                    } else {
                        *odd
                    }
                }
            };
            let counted = self.depth;
            self.value::<E>(bytes, &mut next, kind, limit)?;
            // Only now is it sure that this item need not be met again.
            if let Some(Level::Items { left, .. }) = counted.checked_sub(1).and_then(|top| self.open.get_mut(top)) {
                *left -= 1;
            }
            *at = next;
        }
        Ok(())
    }

    /// Steps over a scalar, or opens a container.
    fn value<E: Encoding>(&mut self, bytes: &[u8], at: &mut usize, kind: Kind, limit: usize) -> Result<(), WireError> {
        if let Some(width) = E::width(kind) {
            // Its bytes need not be there yet.
            *at += width;
            return Ok(());
        }
        match kind {
            Kind::String => *at = E::size(bytes, at)?.saturating_add(*at),
            Kind::Struct => self.push(Level::Struct)?,
            Kind::List | Kind::Set => {
                let (element, count) = E::list(bytes, at)?;
                if let Some(width) = E::width(element) {
                    self.check_depth()?;
                    *at = at.saturating_add(width.saturating_mul(count as usize));
                } else {
                    self.items(*at, element, element, count, limit)?;
                }
            }
            Kind::Map => {
                let (key, value, count) = E::map(bytes, at)?;
                // Counts come as i32 that are not negative, so twice as many fit.
                self.items(*at, key, value, count.saturating_mul(2), limit)?;
            }
            _ => drop(E::number(bytes, at, kind)?),
        }
        Ok(())
    }

    fn check_depth(&self) -> Result<(), WireError> {
        if self.outside + self.depth >= MAX_DEPTH { Err(WireError::TooDeep) } else { Ok(()) }
    }

    fn items(&mut self, at: usize, even: Kind, odd: Kind, left: u32, limit: usize) -> Result<(), WireError> {
        // Each item has a byte at least: what cannot fit need not be waited for.
        let size = at.saturating_add(left as usize);
        if size > limit {
            return Err(WireError::TooLarge { size, limit });
        }
        self.push(Level::Items { even, odd, left })
    }
}

/// Steps over the fields of a struct that are strings or have a width, nearly all of them: up to the struct's end (`None`), or up to
/// the value of another kind, which begins at `next` while `at` stays at its field.
#[inline]
fn plain_fields<E: Encoding>(bytes: &[u8], at: &mut usize, next: &mut usize, limit: usize) -> Result<Option<Kind>, WireError> {
    while *at <= limit {
        *next = *at;
        let Some(field) = E::field(bytes, next, 0)? else {
            *at = *next;
            return Ok(None);
        };
        if field.inline.is_none() {
            if field.kind == Kind::String {
                *next = E::size(bytes, next)?.saturating_add(*next);
            } else if let Some(width) = E::width(field.kind) {
                // Its bytes need not be there yet.
                *next += width;
            } else {
                return Ok(Some(field.kind));
            }
        }
        *at = *next;
    }
    Err(WireError::TooLarge { size: *at, limit })
}

/// Steps over a value that stands in `outside` containers and whose bytes are all there.
pub fn skip<E: Encoding>(bytes: &[u8], at: &mut usize, kind: Kind, outside: usize) -> Result<(), WireError> {
    let mut walker = Walker::new(outside);
    let all_there = |stepped: Result<(), WireError>| match stepped {
        Err(WireError::TooLarge { .. }) => Err(WireError::Truncated),
        other => other,
    };
    all_there(walker.value::<E>(bytes, at, kind, bytes.len()))?;
    if !walker.is_done() {
        all_there(walker.run::<E>(bytes, at, bytes.len()))?;
    }
    if *at > bytes.len() { Err(WireError::Truncated) } else { Ok(()) }
}
