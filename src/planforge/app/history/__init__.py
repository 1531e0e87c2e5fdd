"""What has happened: replayed, proved, asked about, checked."""
