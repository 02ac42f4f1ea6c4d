//! A Parquet file, column by column.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::error::StoreError;

/// Columns of one length; every value may be missing.
#[derive(Default)]
pub(super) struct Table(Vec<(&'static str, Column)>);

enum Column {
    Texts(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Numbers(Vec<Option<f64>>),
}

impl Table {
    pub(super) fn texts(&mut self, name: &'static str, values: impl Iterator<Item = Option<String>>) {
        self.0.push((name, Column::Texts(values.collect())));
    }

    pub(super) fn whole(&mut self, name: &'static str, values: impl Iterator<Item = Option<i64>>) {
        self.0.push((name, Column::Whole(values.collect())));
    }

    pub(super) fn numbers(&mut self, name: &'static str, values: impl Iterator<Item = Option<f64>>) {
        self.0.push((name, Column::Numbers(values.collect())));
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let file = File::create(path).map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
        self.write_to(file).map_err(|error| StoreError::Table { path: path.to_path_buf(), why: error.to_string() })
    }

    fn write_to(&self, file: File) -> Result<(), ParquetError> {
        let fields: Result<Vec<TypePtr>, ParquetError> =
            self.0.iter().map(|(name, column)| column.field(name)).collect();
        let schema = Type::group_type_builder("narrows").with_fields(fields?).build()?;
        // The writer's own name has no version in it, so that the same rows are the same octets.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("narrows".to_owned())
            .build();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, column) in &self.0 {
            let Some(mut sink) = group.next_column()? else { break };
            match column {
                Column::Texts(values) => {
                    let present: Vec<ByteArray> =
                        values.iter().flatten().map(|text| ByteArray::from(text.as_str())).collect();
                    sink.typed::<ByteArrayType>().write_batch(&present, Some(&levels(values)), None)?;
                }
                Column::Whole(values) => {
                    let present: Vec<i64> = values.iter().flatten().copied().collect();
                    sink.typed::<Int64Type>().write_batch(&present, Some(&levels(values)), None)?;
                }
                Column::Numbers(values) => {
                    let present: Vec<f64> = values.iter().flatten().copied().collect();
                    sink.typed::<DoubleType>().write_batch(&present, Some(&levels(values)), None)?;
                }
            }
            sink.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

impl Column {
    fn field(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Self::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole(_) => (Physical::INT64, None),
            Self::Numbers(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    }
}

/// One for what is there, zero for what is missing.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let mut table = Table::default();
        table.texts("word", [Some("a,b".to_owned()), None].into_iter());
        table.whole("count", [None, Some(i64::MAX)].into_iter());
        table.numbers("ratio", [Some(-0.5), Some(0.25)].into_iter());
        table.write(&path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<parquet::record::Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a,b");
        assert!(rows[0].get_long(1).is_err(), "missing");
        assert_eq!(rows[1].get_long(1).unwrap(), i64::MAX);
        assert_eq!(rows[1].get_double(2).unwrap().to_bits(), 0.25f64.to_bits());
        let first = std::fs::read(&path).unwrap();
        table.write(&path).unwrap();
        assert_eq!(first, std::fs::read(&path).unwrap(), "the same rows are the same octets");
    }
}
