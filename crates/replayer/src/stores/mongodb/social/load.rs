//! How the documents are loaded, and restored from a loaded copy.

use std::borrow::Cow;

use mongodb::bson::doc;
use mongodb::error::Error;
use mongodb::{Database, IndexModel};

use super::documents::{Comments, LAYOUT, of_fragment};
use super::reset;
use crate::source::Source;
use crate::stores::HeldState;
use crate::stores::mongodb::batch::{Batches, DocumentError};
use crate::stores::mongodb::collections::{COMMENTS, MEMBERS, RESOURCES};
use crate::stores::mongodb::load::Documents;

impl Documents for Comments {
    fn collections(&self) -> Vec<(Cow<'static, str>, Vec<IndexModel>)> {
        let index = |keys| vec![IndexModel::builder().keys(keys).build()];
        let mut all = vec![(MEMBERS.into(), Vec::new()), (RESOURCES.into(), index(doc! { "wall": 1, "_id": -1 }))];
        if *self == Comments::Collection {
            all.push((COMMENTS.into(), index(doc! { "resource": 1 })));
        }
        all
    }

    fn loaded(&self, source: &Source) -> HeldState {
        HeldState::loaded(LAYOUT, self.settings(), source)
    }

    fn of_fragment<'a>(&'a self, source: &'a Source, fragment: u32) -> Result<Batches<'a>, DocumentError> {
        of_fragment(source, fragment, *self)
    }

    async fn restore(&self, from: &Database, to: &Database, fresh: &HeldState) -> Result<bool, Error> {
        let is_whole = reset::is_whole(*self, from, to).await?;
        if is_whole {
            reset::restore(*self, from, to, fresh).await?;
        }
        Ok(is_whole)
    }
}
