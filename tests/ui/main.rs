//! Tests of the window as users see it: by labels, keys and painted shapes. One file per promise.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/gui.rs"]
mod gui;
#[path = "../common/poplar_files.rs"]
mod poplar_files;
#[path = "../common/walk.rs"]
mod walk;
#[path = "../common/xla_made.rs"]
mod xla_made;

mod advisor_views;
mod buffers_view;
mod changes;
mod charts;
mod compare_view;
mod compared_columns;
mod cut_texts;
mod details;
mod following;
mod headlines;
mod heat_map;
mod help;
mod hidden_names;
mod layout;
mod lines_and_words;
mod message_listing;
mod narrow_window;
mod numbers;
mod one_truth;
mod one_verdict;
mod padding_view;
mod places;
mod ranges_and_trees;
mod screen_and_report;
mod session_views;
mod tile_views;
mod timeline;
mod torch_failure;
mod treemap;
mod views;
mod waiting;
mod walk_through;
mod window;
