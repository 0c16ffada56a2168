//! OpenJPEG's C functions, as functions that are safe to call.
//!
//! Each call makes what it needs and frees it at its end, on any way out; nothing is shared between calls,
//! so they can run in several threads at a time.

#![allow(unsafe_code, reason = "OpenJPEG is written in C; each block says why it is sound")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use openjpeg_sys as opj;

use crate::limits::LAYERS_MAX;

/// Bytes that OpenJPEG reads or writes at a time.
const CHUNK_BYTES: usize = 1 << 16;
/// What its callbacks return when there is no more.
const END: usize = usize::MAX;

/// One component of a picture: 8 bits a sample, without sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component<S> {
    /// Columns and rows of the picture that share a sample.
    pub(super) step: (u32, u32),
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) samples: S,
}

/// How a picture is coded.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// Of all layers up to each, as OpenJPEG counts them: by components of full size.
    pub(super) ratios: &'a [f32],
    /// Decomposition levels and one more.
    pub(super) resolutions: i32,
    pub(super) comment: &'a CStr,
    pub(super) is_gray: bool,
}

/// Codes a picture of this width and height.
///
/// # Errors
/// What OpenJPEG says.
pub(super) fn compress(
    size: (u32, u32),
    components: &[Component<&[u8]>],
    settings: &Settings<'_>,
) -> Result<Vec<u8>, String> {
    let image = Image::new(size, components, settings.is_gray)?;
    let mut said = Complaint::default();
    let mut written = Cursor::new(Vec::new());
    let codec = Codec::compressor(&mut said)?;
    let stream = Stream::writing(&mut written)?;
    let mut parameters = parameters(settings)?;
    // SAFETY: codec, image and stream are what OpenJPEG made, and live until behind the last of these
    // calls; so do `said` and `written`, which they have pointers to, and the comment, which is copied.
    let done = unsafe {
        opj::opj_setup_encoder(codec.0.as_ptr(), &raw mut parameters, image.0.as_ptr()) != 0
            && opj::opj_start_compress(codec.0.as_ptr(), image.0.as_ptr(), stream.0.as_ptr()) != 0
            && opj::opj_encode(codec.0.as_ptr(), stream.0.as_ptr()) != 0
            && opj::opj_end_compress(codec.0.as_ptr(), stream.0.as_ptr()) != 0
    };
    drop((stream, codec));
    if done { Ok(written.into_inner()) } else { Err(said.why()) }
}

/// Decodes a codestream, which must be whole.
///
/// # Errors
/// What OpenJPEG says, or that there are samples of other than 8 bits.
pub(super) fn decompress(codestream: &[u8]) -> Result<Vec<Component<Vec<u8>>>, String> {
    let mut said = Complaint::default();
    let mut read = Cursor::new(codestream);
    let codec = Codec::decompressor(&mut said)?;
    let stream = Stream::reading(&mut read)?;
    let mut parameters = MaybeUninit::<opj::opj_dparameters_t>::zeroed();
    let mut image = ptr::null_mut();
    // SAFETY: codec and stream are what OpenJPEG made, and live until behind the last of these calls; so
    // do `said` and `read`, which they have pointers to. The parameters are written before they are read.
    let read_header = unsafe {
        opj::opj_set_default_decoder_parameters(parameters.as_mut_ptr());
        opj::opj_setup_decoder(codec.0.as_ptr(), parameters.as_mut_ptr()) != 0
            && opj::opj_decoder_set_strict_mode(codec.0.as_ptr(), 1) != 0
            && opj::opj_read_header(stream.0.as_ptr(), codec.0.as_ptr(), &raw mut image) != 0
    };
    // An image may have been made even where reading the header failed later.
    let image = NonNull::new(image).map(Image);
    let decoded = read_header
        && image.as_ref().is_some_and(|image| {
            // SAFETY: as above; the image is what OpenJPEG made of the header.
            unsafe {
                opj::opj_decode(codec.0.as_ptr(), stream.0.as_ptr(), image.0.as_ptr()) != 0
                    && opj::opj_end_decompress(codec.0.as_ptr(), stream.0.as_ptr()) != 0
            }
        });
    drop((stream, codec));
    match image {
        Some(image) if decoded => image.components(),
        _ => Err(said.why()),
    }
}

fn parameters(settings: &Settings<'_>) -> Result<opj::opj_cparameters_t, String> {
    if settings.ratios.len() > LAYERS_MAX {
        return Err("more layers than OpenJPEG has places for".to_owned());
    }
    let mut parameters = MaybeUninit::<opj::opj_cparameters_t>::zeroed();
    // SAFETY: OpenJPEG writes all of the parameters, with values that the types have.
    let mut parameters = unsafe {
        opj::opj_set_default_encoder_parameters(parameters.as_mut_ptr());
        parameters.assume_init()
    };
    parameters.tcp_numlayers = settings.ratios.len() as i32;
    parameters.tcp_rates[..settings.ratios.len()].copy_from_slice(settings.ratios);
    parameters.cp_disto_alloc = 1;
    parameters.prog_order = opj::PROG_ORDER::OPJ_LRCP;
    parameters.irreversible = 1;
    parameters.numresolution = settings.resolutions;
    // A tile-part for each layer.
    (parameters.tp_on, parameters.tp_flag) = (1, b'L' as c_char);
    // OpenJPEG copies the comment and leaves it as it is.
    parameters.cp_comment = settings.comment.as_ptr().cast_mut();
    Ok(parameters)
}

/// What went wrong, as OpenJPEG tells it.
#[derive(Debug, Default)]
struct Complaint(Option<CString>);

impl Complaint {
    fn why(self) -> String {
        let text = self.0.map(|text| text.to_string_lossy().trim().to_owned());
        text.filter(|text| !text.is_empty()).unwrap_or_else(|| "it does not say why".to_owned())
    }
}

/// Keeps the first thing that went wrong: what follows comes of it.
unsafe extern "C" fn hear(message: *const c_char, said: *mut c_void) {
    // SAFETY: OpenJPEG gives text with an end, and the pointer that was set along with this function.
    let (message, said) = unsafe { (CStr::from_ptr(message), &mut *said.cast::<Complaint>()) };
    said.0.get_or_insert_with(|| message.to_owned());
}

/// A compressor or decompressor. It has a pointer to a [`Complaint`], which must outlive it.
struct Codec(NonNull<opj::opj_codec_t>);

impl Codec {
    fn compressor(said: &mut Complaint) -> Result<Self, String> {
        // SAFETY: it needs nothing.
        Self::hearing(unsafe { opj::opj_create_compress(opj::CODEC_FORMAT::OPJ_CODEC_J2K) }, said)
    }

    fn decompressor(said: &mut Complaint) -> Result<Self, String> {
        // SAFETY: it needs nothing.
        Self::hearing(unsafe { opj::opj_create_decompress(opj::CODEC_FORMAT::OPJ_CODEC_J2K) }, said)
    }

    fn hearing(codec: *mut opj::opj_codec_t, said: &mut Complaint) -> Result<Self, String> {
        let codec = Codec(NonNull::new(codec).ok_or_else(no_memory)?);
        // SAFETY: the codec was just made; `hear` is what it calls, with this very pointer.
        unsafe { opj::opj_set_error_handler(codec.0.as_ptr(), Some(hear), ptr::from_mut(said).cast()) };
        Ok(codec)
    }
}

impl Drop for Codec {
    fn drop(&mut self) {
        // SAFETY: OpenJPEG made it, and it is used no more.
        unsafe { opj::opj_destroy_codec(self.0.as_ptr()) };
    }
}

fn no_memory() -> String {
    "it gets no memory".to_owned()
}

/// Bytes in memory as OpenJPEG reads or writes them. It has a pointer to a cursor, which must outlive it.
struct Stream(NonNull<opj::opj_stream_t>);

impl Stream {
    fn reading(from: &mut Cursor<&[u8]>) -> Result<Self, String> {
        let length = from.get_ref().len() as u64;
        let stream = Self::over(from, true)?;
        // SAFETY: the stream was just made, and `read` is called with the cursor that it was given.
        unsafe {
            opj::opj_stream_set_read_function(stream.0.as_ptr(), Some(read));
            opj::opj_stream_set_user_data_length(stream.0.as_ptr(), length);
        }
        Ok(stream)
    }

    fn writing(to: &mut Cursor<Vec<u8>>) -> Result<Self, String> {
        let stream = Self::over(to, false)?;
        // SAFETY: the stream was just made, and `write` is called with the cursor that it was given.
        unsafe { opj::opj_stream_set_write_function(stream.0.as_ptr(), Some(write)) };
        Ok(stream)
    }

    fn over<C: Seek>(cursor: &mut C, reads: bool) -> Result<Self, String> {
        // SAFETY: it needs nothing.
        let stream = unsafe { opj::opj_stream_create(CHUNK_BYTES, reads.into()) };
        let stream = Stream(NonNull::new(stream).ok_or_else(no_memory)?);
        // SAFETY: the stream was just made; the functions are called with this very pointer, to a `C`.
        unsafe {
            opj::opj_stream_set_user_data(stream.0.as_ptr(), ptr::from_mut(cursor).cast(), None);
            opj::opj_stream_set_skip_function(stream.0.as_ptr(), Some(skip::<C>));
            opj::opj_stream_set_seek_function(stream.0.as_ptr(), Some(seek::<C>));
        }
        Ok(stream)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: OpenJPEG made it, and it is used no more.
        unsafe { opj::opj_stream_destroy(self.0.as_ptr()) };
    }
}

unsafe extern "C" fn read(to: *mut c_void, length: usize, from: *mut c_void) -> usize {
    // SAFETY: OpenJPEG gives room for `length` bytes, and the cursor that was set along with this function.
    let (to, from) = unsafe {
        (std::slice::from_raw_parts_mut(to.cast::<u8>(), length), &mut *from.cast::<Cursor<&[u8]>>())
    };
    from.read(to).ok().filter(|read| *read > 0).unwrap_or(END)
}

unsafe extern "C" fn write(bytes: *mut c_void, length: usize, to: *mut c_void) -> usize {
    // SAFETY: OpenJPEG gives `length` bytes, and the cursor that was set along with this function.
    let (bytes, to) = unsafe {
        (std::slice::from_raw_parts(bytes.cast::<u8>(), length), &mut *to.cast::<Cursor<Vec<u8>>>())
    };
    to.write_all(bytes).map_or(END, |()| length)
}

unsafe extern "C" fn skip<C: Seek>(length: i64, cursor: *mut c_void) -> i64 {
    // SAFETY: it is the cursor that was set along with this function.
    let cursor = unsafe { &mut *cursor.cast::<C>() };
    cursor.seek(SeekFrom::Current(length)).map_or(-1, |_| length)
}

unsafe extern "C" fn seek<C: Seek>(place: i64, cursor: *mut c_void) -> i32 {
    // SAFETY: it is the cursor that was set along with this function.
    let cursor = unsafe { &mut *cursor.cast::<C>() };
    let place = u64::try_from(place).ok();
    place.is_some_and(|place| cursor.seek(SeekFrom::Start(place)).is_ok()).into()
}

/// An image.
struct Image(NonNull<opj::opj_image_t>);

impl Image {
    fn new(
        (width, height): (u32, u32),
        components: &[Component<&[u8]>],
        is_gray: bool,
    ) -> Result<Self, String> {
        let parameter = |component: &Component<&[u8]>| opj::opj_image_cmptparm_t {
            dx: component.step.0,
            dy: component.step.1,
            w: component.width as u32,
            h: component.height as u32,
            x0: 0,
            y0: 0,
            prec: 8,
            bpp: 8,
            sgnd: 0,
        };
        let mut parameters: Vec<_> = components.iter().map(parameter).collect();
        let colours =
            if is_gray { opj::COLOR_SPACE::OPJ_CLRSPC_GRAY } else { opj::COLOR_SPACE::OPJ_CLRSPC_SYCC };
        // SAFETY: there are as many parameters as it is told.
        let image =
            unsafe { opj::opj_image_create(parameters.len() as u32, parameters.as_mut_ptr(), colours) };
        let mut image = Image(NonNull::new(image).ok_or_else(no_memory)?);
        // SAFETY: the image was just made, and nothing else has a pointer to it.
        let made = unsafe { image.0.as_mut() };
        (made.x1, made.y1) = (width, height);
        for (index, component) in components.iter().enumerate() {
            // SAFETY: OpenJPEG has made as many components, each with room for width times height values.
            let values = unsafe {
                let made = &*made.comps.add(index);
                std::slice::from_raw_parts_mut(made.data, component.width * component.height)
            };
            for (value, sample) in values.iter_mut().zip(component.samples) {
                *value = (*sample).into();
            }
        }
        Ok(image)
    }

    fn components(&self) -> Result<Vec<Component<Vec<u8>>>, String> {
        // SAFETY: OpenJPEG made the image and has decoded it; it has `numcomps` components.
        let components = unsafe {
            let image = self.0.as_ref();
            std::slice::from_raw_parts(image.comps, image.numcomps as usize)
        };
        components.iter().map(component).collect()
    }
}

fn component(made: &opj::opj_image_comp_t) -> Result<Component<Vec<u8>>, String> {
    let (width, height) = (made.w as usize, made.h as usize);
    if made.data.is_null() || made.prec != 8 || made.sgnd != 0 {
        return Err("a component was not decoded, or has samples of other than 8 bits".to_owned());
    }
    // SAFETY: OpenJPEG has decoded the component: it has width times height values.
    let values = unsafe { std::slice::from_raw_parts(made.data, width * height) };
    let samples = values.iter().map(|value| (*value).clamp(0, 255) as u8).collect();
    Ok(Component { step: (made.dx, made.dy), width, height, samples })
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: OpenJPEG made it, and it is used no more.
        unsafe { opj::opj_image_destroy(self.0.as_ptr()) };
    }
}
