//! The tables of an SQLite file: names, columns, numbers of rows.

use rusqlite::Connection;

/// Most tables that are examined.
const MAX_TABLES: usize = 2000;

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<String>,
    /// Rows; an estimate from the highest row id where there is one.
    pub rows: u64,
    /// Whether it has row ids.
    pub has_rowid: bool,
}

/// All tables.
#[derive(Debug, Default)]
pub struct Schema {
    /// In the file's order.
    pub tables: Vec<Table>,
}

/// A quoted SQL identifier.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name without case and underscores, for comparing.
pub fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl Schema {
    /// Reads the list of tables.
    ///
    /// # Errors
    /// If the file is not a database or its list is damaged.
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut schema = Self::default();
        let mut query =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
        let names: Vec<String> =
            query.query_map([], |row| row.get(0))?.take(MAX_TABLES).filter_map(Result::ok).collect();
        for name in names {
            let mut table = Table { name, ..Table::default() };
            if let Ok(mut query) = connection.prepare(&format!("PRAGMA table_info({})", quoted(&table.name)))
                && let Ok(columns) = query.query_map([], |row| row.get::<_, String>(1))
            {
                table.columns = columns.take(MAX_TABLES).filter_map(Result::ok).collect();
            }
            // The highest row id is found at once; counting reads the whole table.
            let count = |what: &str| {
                connection
                    .query_row(&format!("SELECT {what} FROM {}", quoted(&table.name)), [], |row| {
                        row.get::<_, Option<i64>>(0)
                    })
                    .map(|rows| u64::try_from(rows.unwrap_or(0)).unwrap_or(0))
            };
            match count("MAX(rowid)") {
                Ok(rows) => {
                    table.has_rowid = true;
                    table.rows = if rows < 100_000 { count("COUNT(*)").unwrap_or(rows) } else { rows };
                }
                // A table without row ids, or one whose last page cannot be read.
                Err(error) => {
                    table.has_rowid = !error.to_string().contains("no such column");
                    table.rows = count("COUNT(*)").unwrap_or(0);
                }
            }
            schema.tables.push(table);
        }
        Ok(schema)
    }

    /// The table of a name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| plain(&table.name) == plain(name))
    }
}

impl Table {
    /// The first of the given columns that the table has.
    pub fn column(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.columns.iter().find(|column| plain(column) == plain(name)))
            .map(String::as_str)
    }

    /// The first column that a test accepts, by its plain name.
    pub fn column_where(&self, accept: impl Fn(&str) -> bool) -> Option<&str> {
        self.columns.iter().find(|column| accept(&plain(column))).map(String::as_str)
    }
}
