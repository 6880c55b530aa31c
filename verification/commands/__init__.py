"""The commands of ``refspec``, one file each."""
