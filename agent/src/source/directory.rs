//! A module directory -> ModuleFiles.
