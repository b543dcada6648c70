"""From bytes to documents: detection, decoding, one reader per format family, and the killable worker pool."""
