//! Numbers on the host or on a device: the one type that vectors, matrices and solver states hold.

use std::ops::Range;
use std::sync::Arc;

use crate::allocations::count_allocation;
use crate::error::{Error, Result, same_length};
use crate::number::Element;
use crate::ocl::{Buffer, Context};
use crate::runs::Runs;

pub(crate) use crate::ocl::Plans;

/// Numbers in the memory of one back end.
#[derive(Debug)]
pub(crate) enum Memory<E> {
    Host(Vec<E>),
    OpenCl(Buffer<E>),
}

/// Place where memory is allocated.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Host,
    OpenCl(Arc<Context>),
}

/// Error of a vector that lives elsewhere than the operation runs.
fn stray(expected: &str) -> Error {
    Error::DeviceMismatch { what: "a vector", expected: expected.into() }
}

impl Place {
    /// Allocates and copies `data` there.
    pub(crate) fn upload<E: Element>(&self, data: &[E]) -> Result<Memory<E>> {
        match self {
            Self::Host => self.take(data.to_vec()),
            Self::OpenCl(context) => Ok(Memory::OpenCl(Buffer::from_slice(context, data)?)),
        }
    }

    /// [`Place::upload`] of data that nobody else needs: the host keeps the vector itself.
    pub(crate) fn take<E: Element>(&self, data: Vec<E>) -> Result<Memory<E>> {
        match self {
            Self::Host => {
                count_allocation();
                Ok(Memory::Host(data))
            }
            Self::OpenCl(_) => self.upload(&data),
        }
    }

    /// Allocates `len` times `value`.
    pub(crate) fn filled<E: Element>(&self, len: usize, value: E) -> Result<Memory<E>> {
        match self {
            Self::Host => self.take(vec![value; len]),
            Self::OpenCl(context) => Ok(Memory::OpenCl(Buffer::filled(context, len, value)?)),
        }
    }
}

impl<E: Element> Memory<E> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            Self::OpenCl(buffer) => buffer.len(),
        }
    }

    /// Waits for the work queued so far, then copies elements `offset ..` out.
    pub(crate) fn read(&self, offset: usize, data: &mut [E]) -> Result<()> {
        match self {
            Self::Host(held) => {
                let end = offset.saturating_add(data.len());
                let Some(found) = held.get(offset..end) else {
                    return same_length("read of a buffer", held.len(), end);
                };
                data.copy_from_slice(found);
                Ok(())
            }
            Self::OpenCl(buffer) => buffer.context().read(buffer, offset, data),
        }
    }

    /// [`Memory::read`] of two whole buffers of one place, waiting once.
    pub(crate) fn read_both<F: Element>(one: (&Self, &mut [E]), other: (&Memory<F>, &mut [F])) -> Result<()> {
        match (one.0, other.0) {
            (Self::OpenCl(a), Memory::OpenCl(b)) => a.context().read_both((a, one.1), (b, other.1)),
            (a, b) => {
                a.read(0, one.1)?;
                b.read(0, other.1)
            }
        }
    }

    /// Copies `data` to its first elements.
    pub(crate) fn write(&mut self, data: &[E]) -> Result<()> {
        match self {
            Self::Host(held) => {
                if data.len() > held.len() {
                    return same_length("write to a buffer", held.len(), data.len());
                }
                held[..data.len()].copy_from_slice(data);
                Ok(())
            }
            Self::OpenCl(buffer) => {
                let context = buffer.context().clone();
                context.write(buffer, 0, data)
            }
        }
    }

    /// Copies all of `source`, of the same length and place.
    pub(crate) fn copy_from(&mut self, source: &Self) -> Result<()> {
        match (self, source) {
            (Self::Host(held), Self::Host(source)) => {
                same_length("copy between buffers", source.len(), held.len())?;
                held.copy_from_slice(source);
                Ok(())
            }
            (Self::OpenCl(buffer), source) => {
                let context = buffer.context().clone();
                context.copy(source.buffer(&context)?, buffer)
            }
            (Self::Host(_), _) => Err(stray("the host")),
        }
    }

    /// Copies runs of `source`, which lies in the same place, to as many of the same length.
    pub(crate) fn copy_runs(&mut self, to: Runs, source: &Self, from: Runs) -> Result<()> {
        match (self, source) {
            (Self::Host(held), Self::Host(source)) => {
                from.check(source.len())?;
                to.check(held.len())?;
                same_length("length of runs to copy", from.len, to.len)?;
                same_length("number of runs to copy", from.count, to.count)?;
                let len = from.len;
                for (from, to) in from.starts().zip(to.starts()) {
                    held[to..to + len].copy_from_slice(&source[from..from + len]);
                }
                Ok(())
            }
            (Self::OpenCl(buffer), source) => {
                let context = buffer.context().clone();
                context.copy_runs((source.buffer(&context)?, from), (buffer, to))
            }
            (Self::Host(_), _) => Err(stray("the host")),
        }
    }

    /// A copy on the host of the elements in `parts`, among zeros. Waits. The zeros take no time: their memory is never touched.
    pub(crate) fn parts(&self, parts: &[Range<usize>]) -> Result<Vec<E>> {
        let mut data = vec![E::default(); self.len()];
        let len = data.len();
        for part in parts {
            same_length("part of a buffer", len, len.max(part.end))?;
            self.read(part.start, &mut data[part.clone()])?;
        }
        Ok(data)
    }

    /// A copy on the host. Waits.
    pub(crate) fn on_host(&self) -> Result<Self> {
        let mut data = vec![E::default(); self.len()];
        self.read(0, &mut data)?;
        Ok(Self::Host(data))
    }

    /// The numbers, if they are on the host.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`].
    #[inline]
    pub(crate) fn host(&self) -> Result<&[E]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::OpenCl(_) => Err(stray("the host")),
        }
    }

    /// [`Memory::host`], to be changed.
    #[inline]
    pub(crate) fn host_mut(&mut self) -> Result<&mut [E]> {
        match self {
            Self::Host(data) => Ok(data),
            Self::OpenCl(_) => Err(stray("the host")),
        }
    }

    /// The buffer, if it is one of `context`.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`].
    pub(crate) fn buffer(&self, context: &Arc<Context>) -> Result<&Buffer<E>> {
        match self {
            Self::OpenCl(buffer) if Arc::ptr_eq(buffer.context(), context) => Ok(buffer),
            _ => Err(stray(&context.info().name)),
        }
    }

    /// [`Memory::buffer`], to be changed.
    pub(crate) fn buffer_mut(&mut self, context: &Arc<Context>) -> Result<&mut Buffer<E>> {
        match self {
            Self::OpenCl(buffer) if Arc::ptr_eq(buffer.context(), context) => Ok(buffer),
            _ => Err(stray(&context.info().name)),
        }
    }
}
